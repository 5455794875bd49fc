"""Progress messages of compilations, with the times that they typically take."""

#: How many seconds the smallest drivers of a module take to compile: alone on a core, and beside other processes.
TYPICAL_SECONDS = {"trajectories": (5, 50), "dynamics": (3, 15), "derivatives": (3, 20)}
#: Types of the parts of a driver. Each part adds the same time again.
LARGE_PARTS = (
    "SharedActions",
    "Samplers",
    "SensitivitySettings",
    "RosenbrockTableau",
    "RadauTableau",
    "ContactRecords",
)


def announcement(driver, types, is_kept):
    """Return the message for the compilation of a driver, "module.function", for these types, as text."""
    seconds = TYPICAL_SECONDS.get(driver.partition(".")[0])
    times = 1 + sum(f"{part}(" in types for part in LARGE_PARTS)
    time = "" if seconds is None else f" ({times * seconds[0]} to {times * seconds[1]} s)"
    if not is_kept:
        return f"Compiling {driver}{time}; set NUMBA_CACHE_DIR to a folder that can be written, to keep it"
    return f"Compiling {driver}{time}; later processes load it from the cache"
