"""What travels: the bodies, replies and events of every endpoint, a module for each surface.

They are checked while they are decoded, and the reference is generated from them. Unknown fields are
ignored, as a newer client may send them. Names are snake case here and camel case on the wire.
"""
