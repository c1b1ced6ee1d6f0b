"""Choice between the builds of the compiled modules that the Debian package holds."""

from pathlib import Path
from typing import List

_NEEDED = {"abm", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}  # x86-64-v3, as Linux names it


def folders(subpackage: str = "") -> List[str]:
    """Where the package's modules for newer processors are, if there are any and this is such a processor."""
    folder = Path(__file__).parent / "x86-64-v3" / subpackage
    return [str(folder)] if folder.is_dir() and _NEEDED <= set(Path("/proc/cpuinfo").read_text().split()) else []
