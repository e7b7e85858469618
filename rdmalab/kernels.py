"""
Kernels that are forked from a process that has imported the libraries, instead of started anew.

    with Spare() as spare:              # first, while this process is still small and has one thread
        papermill.execute_notebook(..., kernel_manager_class=spare.manager())

Such a kernel is an ordinary one (ipykernel over ZMQ, in a process of its own that ends with the notebook); only its
1.5 seconds of starting Python and importing are saved.
"""

import json
import os
import signal
import time
from pathlib import Path
from types import TracebackType
from typing import Any


class Spare:
    """A forked process that waits for the command to become a kernel; without it, it ends."""

    stdin = stdout = stderr = None  # as of a subprocess.Popen, which jupyter_client takes this for

    def __init__(self) -> None:
        reader, self._pipe = os.pipe()
        self.returncode: int | None = None
        self.pid = os.fork()
        if not self.pid:
            os.close(self._pipe)
            _become_kernel(reader)
        os.close(reader)

    def __enter__(self) -> "Spare":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._pipe)
        if self.poll() is None:
            self.kill()
            self.wait()

    def launch(self, command: list[str], environment: dict[str, str], folder: str) -> None:
        """Makes a kernel of the process, as the kernelspec's *command* would."""
        order = {"arguments": command[command.index("-f") :], "environment": environment, "folder": folder}
        with os.fdopen(os.dup(self._pipe), "w", encoding="utf-8") as pipe:
            pipe.write(json.dumps(order) + "\n")

    def poll(self) -> int | None:
        """The exit status, None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int | None:
        """Waits for its end."""
        while self.poll() is None:
            time.sleep(0.01)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends a signal."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Asks it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it."""
        self.send_signal(signal.SIGKILL)

    def manager(self) -> type:
        """The kernel manager class for papermill and nbclient whose kernel is this process."""
        from jupyter_client.manager import AsyncKernelManager
        from jupyter_client.provisioning.local_provisioner import LocalProvisioner

        spare = self

        class Provisioner(LocalProvisioner):
            async def launch_kernel(self, cmd: list[str], **given: Any) -> Any:
                spare.launch(cmd, given["env"], str(given.get("cwd") or Path.cwd()))
                self.process, self.pid = spare, spare.pid  # type: ignore[assignment]
                return self.connection_info

        class Manager(AsyncKernelManager):
            def __init__(self, **given: Any) -> None:
                super().__init__(**given)
                self.provisioner = Provisioner(kernel_id="", kernel_spec=self.kernel_spec, parent=self)

        return Manager


def _become_kernel(reader: int) -> None:
    """The life of the forked process; it never returns to the code that it was forked from."""
    status = 1
    try:
        with os.fdopen(reader, encoding="utf-8") as pipe:
            line = pipe.readline()
        if not line:
            os._exit(0)
        order = json.loads(line)
        os.environ.clear()
        os.environ.update(order["environment"])
        os.chdir(order["folder"])
        from ipykernel.kernelapp import IPKernelApp

        tie = f"--IPKernelApp.parent_handle={os.getppid()}"  # it ends when the process that drives it does
        IPKernelApp.launch_instance(argv=[*order["arguments"], tie, "--IPKernelApp.log_level=50"])
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0
    finally:
        os._exit(status)
