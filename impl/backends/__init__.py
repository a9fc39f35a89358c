"""The built-in backends, one kernel family a module; imported only when one of them is loaded."""
