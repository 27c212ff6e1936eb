"""What people and agents can ask for, once: the CLI, the Python API, the hooks and the MCP server call these.

sending    send and reply
reading    tail, show, log, thread
watching   status, incidents, verify
operating  sync, heal, trust, keys, groups
"""
