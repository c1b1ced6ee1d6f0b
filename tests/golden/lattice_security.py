#!/usr/bin/python3
"""Costs of lattice attacks on the parameters of the scheme `encrypted` (PRIVACY.md section 9).

`./lattice_security.py [log2 of q ...]` prints, for each attack, the block size of BKZ and log2 of the cost.
Core-SVP (Alkim, Ducas, Poeppelmann, Schwabe 2016) counts one call of a sieve: 2^(.292 block), 2^(.265 block)
with a quantum computer. The Homomorphic Encryption Standard of 2018 counts 8 dimension calls of 2^16.4 times
that. The largest q that its table allows for 128 bits, 2^54 classical and 2^51 quantum, checks this program.
"""
import math
import sys

N, SIGMA, SIGMA_S = 2048, math.sqrt(21 / 2), math.sqrt(2 / 3)
CLASSICAL, QUANTUM, VECTORS = .292, .265, .2075  # exponents of a sieve's time and of the short vectors that it finds
LOG_RATIO = math.log2(SIGMA / SIGMA_S)


def log_delta(block):
    """log2 of the root Hermite factor of BKZ (Chen 2013)."""
    return math.log2((math.pi * block) ** (1 / block) * block / (2 * math.pi * math.e)) / (2 * (block - 1))


def primal(log_q):
    """(block, dimension) of the uSVP attack: BKZ finds (e, s SIGMA / SIGMA_S, 1) if its projection is shorter than
    the last block's Gram-Schmidt vector."""
    def finds(block, samples):
        d = N + samples + 1
        volume = samples * log_q + N * LOG_RATIO
        return math.log2(SIGMA) + math.log2(block) / 2 <= (2 * block - d - 1) * log_delta(block) + volume / d

    for block in range(60, 2 * N):
        for samples in range(N // 4, 2 * N, 8):
            if finds(block, samples):
                return block, N + samples + 1
    raise ValueError("no block size breaks log2 q = %g" % log_q)


def dual(log_q, exponent, guessed, log_trials):
    """(log2 cost, block). Short vectors of the dual lattice tell samples from uniform values; each sieve gives
    2^(.2075 block) of them. log_trials(log2 of the vectors needed): the cost of trying all values of `guessed`
    coordinates of s."""
    n, best = N - guessed, (math.inf, 0)
    for block in range(60, 2 * N, 2):
        if exponent * block >= best[0]:
            break
        length = min((d - 1) * log_delta(block) + n * (log_q - LOG_RATIO) / d for d in range(n + n // 4, 3 * n, 32))
        tau = 2.0 ** (length + math.log2(SIGMA) - log_q)
        log_vectors = 4 * math.pi**2 * tau**2 * math.log2(math.e) + math.log2(1 + guessed * math.log(3))
        cost = exponent * block + max(0., log_vectors - VECTORS * block)
        best = min(best, (max(cost, log_trials(log_vectors)), block))
    return best


def main():
    for log_q in map(float, sys.argv[1:] or ("41", "51", "54")):
        print("n %d, log2 q %g, standard deviation %.2f, ternary secret" % (N, log_q, SIGMA))
        block, d = primal(log_q)
        for name, exponent in (("classical", CLASSICAL), ("quantum", QUANTUM)):
            standard = exponent * block + 16.4 + math.log2(8 * d)
            print("  primal, %s: block %d, %.0f bits; by the standard's count %.0f" % (name, block, exponent * block, standard))
            print("  dual, %s: block %d, %.0f bits" % ((name,) + dual(log_q, exponent, 0, lambda m: 0)[::-1]))
            best = (math.inf,)
            for k in range(0, 300, 10):
                trials = k * math.log2(3)
                # A Fourier transform tries all values at once; a quantum search takes a square root (Albrecht, Shen 2022).
                count = (lambda m: trials) if name == "classical" else (lambda m: min(trials, (trials + m) / 2))
                best = min(best, dual(log_q, exponent, k, count) + (k,))
            print("  dual, %d coordinates tried, %s: block %d, %.0f bits" % (best[2], name, best[1], best[0]))


if __name__ == "__main__":
    main()
