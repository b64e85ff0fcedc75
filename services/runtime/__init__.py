"""How any process of the project lives: configuration, server, channels, deadlines, logging, metrics."""
