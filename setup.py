"""The build of the wheel. Version and installed files are those of CMake."""
import re
from pathlib import Path

from setuptools import find_packages
from skbuild import setup
from skbuild.constants import CMAKE_INSTALL_DIR

setup(
    version=re.search(r"^project\(privatemail VERSION ([0-9.]+)", Path("CMakeLists.txt").read_text(), re.M)[1],
    packages=find_packages("client/python"),
    package_dir={"": "client/python"},
    cmake_args=["-GNinja", "-DPRIVATEMAIL_PYTHON=ON", "-DPRIVATEMAIL_BUILD_TESTS=OFF", "-DCMAKE_UNITY_BUILD=ON",
                "-DCMAKE_UNITY_BUILD_BATCH_SIZE=16", "-DPRIVATEMAIL_PYTHON_FOLDER=client/python"],
    cmake_install_target="install_python",
    # CMake lists the installed files of a whole build only.
    cmake_process_manifest_hook=lambda _: [str(path) for path in Path(CMAKE_INSTALL_DIR()).rglob("*.*")],
)
