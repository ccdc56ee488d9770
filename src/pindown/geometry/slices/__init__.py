"""A network along lines and on planes: exact restrictions, for any number of inputs."""
