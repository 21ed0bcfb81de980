# SPDX-License-Identifier: MIT
"""Draws GB/s by size, one curve a way (copies.py --draw)."""


def draw(found, path):
    """found: as copies.py has it. Needs matplotlib."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True)
    for axis, name in zip(axes, ("H2D", "D2H")):
        for way in ("native", "shim", "shim-1-thread", "pinned"):
            points = sorted((size, size / us / 1e3) for (row, size), (_, us, _) in found[way].items() if row == name)
            axis.plot(*zip(*points), marker="o", label=way)
        axis.set(title=f"{name}, until the device is done", xscale="log", yscale="log", xlabel="bytes", ylabel="GB/s")
        axis.grid(True, which="major", alpha=0.3)
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
