"""PyTorch: leaks through the nodes of autograd graphs, and modes of autograd that are left on.

Each file states ``NEEDS = "torch"``; without PyTorch its scenarios are skipped.
May import: scenarios.programs.
Third-party: torch.
"""
