"""One cell and its neighbours, for networks with any number of inputs."""
