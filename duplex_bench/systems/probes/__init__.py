"""What the conformance suite tries on a system, one module for each kind of rule."""
