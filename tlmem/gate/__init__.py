"""The gate: budgets against recordings, a decision and an exit code; ``check.check`` starts it.

In: recordings, options of the command line, TOML tables. Out: ``decision.Checked``, in six formats.
May import: errors, units, output, recording, analysis, fleets, report, gate.outputs.
Third-party: numpy, pandas. Inside functions: scipy.

Reading order: ``amounts`` (5 MB, 100 kB/s), ``budget_kinds`` (every budget), ``budgets`` (what a
user asked for), ``suppressions``, ``inputs`` (what was recorded), ``growth_rates``, ``peak_parts``
and ``measure`` (values with intervals), ``decision``, ``outputs`` (a format each), ``fleet`` (every
process of a folder), ``check``;
``repeat`` and ``sequential`` for repeated runs.
"""
