"""Wolf et al. 2019, one-class learning by local maxima: its tables and figures."""
