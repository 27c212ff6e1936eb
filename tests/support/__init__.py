"""What the tests stand on: machines, remotes, the oracle. See CONTRIBUTING.md."""
