"""The virtual environment of the measured programs: both packages, built from this checkout, and pytest."""

import subprocess
import sys

from bench import ROOT, os_ken_python

ENVIRONMENT = "target/python/figures"
# Relative to the project's folder, in which all programs run.
PYTHON = f"{ENVIRONMENT}/bin/python"
WHEELS = "target/wheels"

VERSIONS = "import platform; from importlib.metadata import version; print(platform.python_version(), version('{package}'))"


def prepared():
    """Builds the packages, and installs them for os-ken's interpreter. Returns facts for the document."""
    call("tools/python", "build")
    if not (ROOT / PYTHON).exists():
        call(os_ken_python(), "-m", "venv", ENVIRONMENT)
    pip = (PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    wheels = [str(file) for file in sorted((ROOT / WHEELS).glob("urtica*.whl"))]
    call(*pip, "--force-reinstall", "--no-deps", *wheels)
    # Their dependencies, if they are missing.
    call(*pip, *wheels, "pytest>=8")
    return {"python": versions(PYTHON, "urtica")[0], "os_ken": " ".join(versions(os_ken_python(), "os-ken")[1:])}


def call(*command):
    if subprocess.run(command, cwd=ROOT).returncode != 0:
        sys.exit(f"python-figures: '{' '.join(command)}' failed: see its output above")


def versions(interpreter, package):
    """Returns the versions of the interpreter and of a package; an empty list if the package is missing."""
    program = VERSIONS.format(package=package)
    return subprocess.run([interpreter, "-c", program], cwd=ROOT, capture_output=True, text=True).stdout.split()
