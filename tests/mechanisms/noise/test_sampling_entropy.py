"""Every draw is fed by the operating system, at the moment of the draw, and by nothing else."""

import copy
import functools
import multiprocessing
import os
import pickle
import random
import threading
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics.enclosures import exp_interval

WIDE = Fraction(1, 2**90)
DRAWS = [
    lambda noise: noise.words(1),
    lambda noise: noise.uniform().interval(1),
    lambda noise: noise.bernoulli_below(functools.partial(exp_interval, Fraction(-1))),
    lambda noise: noise.geometric(1, 1),
    lambda noise: noise.geometric(1, 1000),
    lambda noise: noise.geometric(WIDE, 1000),
    lambda noise: noise.discrete_laplace(1, 1),
    lambda noise: noise.discrete_laplace(1, 10**6),
    lambda noise: noise.discrete_gaussian(1, 1),
    lambda noise: noise.discrete_gaussian(1, 1000),
    lambda noise: noise.first_success(Fraction(1), [50], [2**64]),
]


def draw_in_child(queue):
    queue.put(Noise().words(1000).tolist())


# Two lists of 64-bit words agree in one word with probability below 1e-12.
class TestRandomnessIsTheSystems:
    @pytest.mark.parametrize("draw", DRAWS)
    def test_without_entropy_the_draw_raises(self, draw, monkeypatch):
        def failing(size):
            raise OSError("no entropy")

        monkeypatch.setattr(os, "urandom", failing)
        with pytest.raises(OSError, match="no entropy"):
            draw(Noise())

    def test_entropy_that_fails_halfway_releases_nothing(self, monkeypatch):
        real, calls = os.urandom, []

        def failing(size):
            calls.append(size)
            if len(calls) > 20:
                raise OSError("no entropy")
            return real(size)

        monkeypatch.setattr(os, "urandom", failing)
        with pytest.raises(OSError, match="no entropy"):
            Noise().discrete_laplace(Fraction(1, 100), 10**6)
        assert len(calls) == 21

    def test_pickled_copies_hold_no_state_and_draw_differently(self):
        noise = Noise()
        copies = [noise, pickle.loads(pickle.dumps(noise)), copy.deepcopy(noise)]
        assert all(vars(one) == {} and one == noise for one in copies)
        words = [word for one in copies for word in one.words(4).tolist()]
        assert len(set(words)) == 12

    @pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
    def test_a_lazy_uniform_cannot_be_duplicated(self, duplicate):
        with pytest.raises(TypeError, match="must not be copied"):
            duplicate(Noise().uniform())

    def test_seeds_have_no_effect(self):
        draws = []
        for _ in range(2):
            random.seed(0)
            np.random.seed(0)
            draws.append(Noise().discrete_gaussian(2**100, 2).tolist())  # equal: below 2^-99
        assert draws[0] != draws[1]

    def test_forked_children_draw_distinct_values(self):
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        children = [context.Process(target=draw_in_child, args=(queue,)) for _ in range(4)]
        for child in children:
            child.start()
        words = [word for _ in children for word in queue.get()]
        for child in children:
            child.join()
        assert len(set(words)) == 4000

    def test_threads_draw_distinct_values(self):
        words = []
        threads = [
            threading.Thread(target=lambda: words.extend(Noise().words(1000).tolist()))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(words)) == 4000
