"""The Model Context Protocol: the verbs as tools of an agent's harness, over standard input and output.

    schema      what a tool takes: the published JSON schema and the check of what came, from one table   (pure)
    tools       the tools; each calls the method of `wire.api.Wire` that the command line calls
    resources   the inbox and the conversations as resources, and which of them a change concerns
    server      the session with a client, by the official SDK

Only `server` imports the SDK, which comes with the extra `git-wire[mcp]`.
"""
