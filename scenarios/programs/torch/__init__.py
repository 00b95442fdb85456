"""PyTorch: the leaks that users report, each with its documented cure, and healthy programs.

Each file states ``NEEDS = "torch"``; without PyTorch its scenarios are skipped.
May import: scenarios.programs.
Third-party: torch.
"""
