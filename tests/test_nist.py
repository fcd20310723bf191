"""A certified problem goes through the estimator.

NIST StRD, nonlinear least squares, Lanczos1 (C. Lanczos, Applied Analysis, 1956, pp. 272-280;
https://www.itl.nist.gov/div898/strd/nls/data/lanczos1.shtml, public domain), of average
difficulty: y = b1 exp(-b2 x) + b3 exp(-b4 x) + b5 exp(-b6 x). It is the estimator's own form: the
seconds of an observation are a sum of three terms, each the exponential of a linear sum of
effects, log b and b. NIST minimises the error of y, the estimator that of log y; weights of y
squared make both the same where errors are as small as here (1e-13). NIST generated y from the
formula with 0.0951, 1, 0.8607, 3, 1.5576 and 5 to 13 or 14 digits.
"""

import numpy as np
import pytest
from scipy import sparse

from tokcast.fits.estimate import Design, Estimate, Prior, Settings, fit

Y = (
    2.513400000000e00,
    2.044333373291e00,
    1.668404436564e00,
    1.366418021208e00,
    1.123232487372e00,
    9.268897180037e-01,
    7.679338563728e-01,
    6.388775523106e-01,
    5.337835317402e-01,
    4.479363617347e-01,
    3.775847884350e-01,
    3.197393199326e-01,
    2.720130773746e-01,
    2.324965529032e-01,
    1.996589546065e-01,
    1.722704126914e-01,
    1.493405660168e-01,
    1.300700206922e-01,
    1.138119324644e-01,
    1.000415587559e-01,
    8.833209084540e-02,
    7.833544019350e-02,
    6.976693743449e-02,
    6.239312536719e-02,
)
CERTIFIED = (
    9.5100000027e-02,
    1.0000000001e00,
    8.6070000013e-01,
    3.0000000002e00,
    1.5575999998e00,
    5.0000000001e00,
)
STARTS = ((1.2, 0.3, 5.6, 5.5, 6.5, 7.6), (0.5, 0.7, 3.6, 4.2, 4.0, 6.3))


def lanczos() -> Design:
    n = len(Y)
    x = 0.05 * np.arange(n)
    cells = np.zeros((3 * n, 6))
    for term in range(3):
        cells[term * n : (term + 1) * n, 2 * term] = 1.0
        cells[term * n : (term + 1) * n, 2 * term + 1] = -x
    y = np.array(Y)
    return Design(
        names=("log b1", "b2", "log b3", "b4", "log b5", "b6"),
        cells=sparse.csr_array(cells),
        seconds=np.ones(3 * n),
        cell=np.arange(3 * n),
        group=np.arange(3 * n),
        part=np.tile(np.arange(n), 3),
        average=sparse.csr_array(sparse.eye_array(n)),
        log_rate=-np.log(y),
        weight=y**2,
        noise=np.zeros(n, dtype=np.intp),
    )


@pytest.mark.parametrize("start", STARTS)
def test_lanczos1_from_both_certified_starts(start: tuple[float, ...]) -> None:
    design = lanczos()
    first = np.array(start)
    first[::2] = np.log(first[::2])
    # Next to no prior, and a Student's t that is a normal: plain least squares.
    prior = Prior(first, np.full(6, 1e3))
    given = Estimate(design.names, first, np.full(6, np.nan), prior, np.array([1e-9]), 0, 0, False)
    settings = Settings(freedom=1e30, n_iterations=3000, tolerance=1e-6)
    found = fit(design, prior, given, settings)
    values = found.theta.copy()
    values[::2] = np.exp(values[::2])
    assert found.converged
    assert values == pytest.approx(CERTIFIED, rel=1e-6)
