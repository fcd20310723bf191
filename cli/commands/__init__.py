"""The commands, a module a group: what each takes. Bodies live in `tokcast.cli`."""
