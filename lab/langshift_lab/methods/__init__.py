"""What the paper compares the shift with: centering, LIR and affine maps, and shifts of uncertain languages."""
