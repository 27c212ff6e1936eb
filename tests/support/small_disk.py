"""A disk that is really full: a script in a mount namespace of its own, with a small tmpfs.

    ran = on_small_disk(tmp_path, '''
    import os
    DISK                                       # the folder where the small disk is mounted
    fill()                                     # until not a byte more fits; free() undoes it
    ''', kib=64)
    assert ran.returncode == 0, ran.stderr

The namespace goes with the script, and the mount with it, however the script ends. Root makes one directly; others
through a user namespace.
"""

import os
import subprocess
import sys
from pathlib import Path

_PROLOGUE = """
import os, sys
DISK = sys.argv[1]

def fill():
    with open(os.path.join(DISK, "filling"), "ab", buffering=0) as file:
        for size in (65536, 4096, 512, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                pass

def free():
    os.unlink(os.path.join(DISK, "filling"))
"""


def on_small_disk(folder: Path, script: str, *, kib: int = 64) -> subprocess.CompletedProcess[str]:
    """Run a Python script with a tmpfs of `kib` KiB mounted on a new folder below `folder`.

    Args:
        folder: where the mount point and the script's file go.
        script: what to run; it finds `DISK`, `fill()` and `free()`.
        kib: size of the disk.
    """
    disk = folder / "small-disk"
    disk.mkdir()
    program = folder / "on_small_disk.py"
    program.write_text(_PROLOGUE + script)
    namespace = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    mount = f'mount -t tmpfs -o size={kib}k,mode=700 tmpfs "$0" && exec "$1" "$2" "$0"'
    return subprocess.run(
        [*namespace, "sh", "-c", mount, disk, sys.executable, program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
