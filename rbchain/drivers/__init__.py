"""Drivers, the compiled functions that Python calls: loops over blocks of lanes, shared among threads.

`dynamics` describes the arguments that all drivers have in common.
"""

from ..compiling import machine_code
from .second_process import second_process

machine_code.while_compiling = second_process
