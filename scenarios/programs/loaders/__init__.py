"""PyTorch: data loaders with worker processes, whose memory is shared or their own.

Each file states ``NEEDS = "torch"``; without PyTorch its scenarios are skipped.
May import: scenarios.programs.
Third-party: torch.
"""
