"""The daemon as a service of its user: unit templates, and the code that installs them."""
