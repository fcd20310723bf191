"""Number formats by operator: products, plans, attention kernels, and what to take when."""
