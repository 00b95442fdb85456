"""What kind of leak a growing line is; one class of leaks a file.

In: growing lines with their survivors. Out: findings.
"""
