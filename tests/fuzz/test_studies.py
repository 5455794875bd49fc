"""Mutated descriptions of studies are refused before the first sample, or every sample ends with a status."""

import numpy as np
import pytest
from hypothesis import given

import rbchain as rb

from .cases import cases, ended
from .mutations import mutated

pytestmark = [
    pytest.mark.plain_python,
    pytest.mark.filterwarnings("error::RuntimeWarning", r"ignore::RuntimeWarning:rbchain\.core", "ignore::UserWarning"),
]
STUDY = """name = "two links"
model = { file = "arm.toml", values = { damping = 0.05 } }
samples = 4
seed = 1

[vary."link[1-2].mass"]
how = "multiply"
distribution = { type = "truncated_normal", mean = 1.0, std = 0.1, low = 0.8, high = 1.2 }

[vary."*.q"]
how = "add"
distribution = { type = "uniform", low = "-5 deg", high = "5 deg" }

[[drives]]
type = "PID"
joint = "link1"
reference = { type = "sines", amplitude = 0.2, angular_frequency = 3.0 }
kp = 2.0
kd = 0.1

[[events]]
joint = "link2"
value = 0.1
stop = true

[simulate]
duration = 0.02
method = "rk4"
step = 0.01
save_at = 3
q = [0.1, 0.2]

[[measures]]
name = "fastest"
quantity = "speed"
frame = "link2"
over = "max"

[[measures]]
name = "end"
quantity = "distance"
frame = "link2"
point = [0.1, 0.2, 0.0]
"""


def test_a_mutated_study_is_refused_or_every_sample_ends_with_a_status(tmp_path):
    rb.save(rb.Model.serial_chain(2), tmp_path / "arm.toml")
    count = 0

    @cases(percent=6, ends=("refused", "run"))
    @given(mutated(STUDY))
    def check(text):
        nonlocal count
        count += 1
        path, out = tmp_path / "study.toml", tmp_path / f"out{count}"
        path.write_bytes(text.encode("utf-8", errors="surrogatepass"))
        try:
            study = rb.Study.read(path)
            study.run(out)
        except rb.RbchainError as error:
            assert str(error).strip()
            assert not (out / "results.zarr").exists(), "samples ran before the description was refused"
            ended("refused")
            return
        found = rb.load_results(out)
        statuses = {int(code) for code in found["status"].values}
        assert statuses <= {int(code) for code in rb.Status}
        failed = ~np.isin(found["status"].values, [rb.Status.DONE, rb.Status.STOPPED])
        for variable in found.data_vars.values():
            if variable.dims == ("sample",) and variable.dtype == np.float64 and "unit" in variable.attrs:
                assert not np.isinf(variable.values).any()
                assert failed.all() or np.isfinite(variable.values[~failed]).any()
        ended("run")

    check()
