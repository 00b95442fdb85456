"""PyTorch: leaks through the nodes of autograd graphs, which Python's collector does not see.

Each file states ``NEEDS = "torch"``; without PyTorch its scenarios are skipped.
May import: scenarios.programs.
Third-party: torch.
"""
