"""What the sandbox is made of and how much of it is used: operating system, tools, CPU, memory, disk."""
