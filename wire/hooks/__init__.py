"""Git hooks of the wire's clone and of its host, and the hooks of agent runtimes."""
