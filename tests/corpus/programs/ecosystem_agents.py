"""Evolve a population of foraging agents with births, deaths and a carrying capacity."""
import time

import numpy as np

CAPACITY = 420


class Agent:
    __slots__ = ("genome", "memory", "energy", "age", "pos")

    def __init__(self, genome, pos, rng):
        self.genome = genome
        self.memory = rng.random((24, 24)).astype(np.float32)
        self.energy = 4.0
        self.age = 0
        self.pos = pos

    def act(self, world, rng):
        step = rng.integers(-1, 2, 2)
        self.pos = (self.pos + step) % world.shape[0]
        food = world[self.pos[0], self.pos[1]]
        self.memory[self.pos[0] % 24, self.pos[1] % 24] = food
        gain = food * (0.6 + 0.4 * self.genome[:16].mean())
        world[self.pos[0], self.pos[1]] *= 0.5
        self.energy += gain - 0.55
        self.age += 1

    def child(self, rng):
        self.energy *= 0.5
        genome = self.genome + rng.normal(0, 0.02, self.genome.size)
        return Agent(np.clip(genome, 0, 1), self.pos.copy(), rng)


def main():
    rng = np.random.default_rng(5)
    world = rng.random((64, 64))
    agents = [Agent(rng.random(1024), rng.integers(0, 64, 2), rng) for _ in range(30)]
    births = deaths = 0
    for tick in range(170):
        world += (1.0 - world) * 0.25
        nxt = []
        pressure = len(agents) / CAPACITY
        for agent in agents:
            agent.act(world, rng)
            if agent.energy < 0 or rng.random() < 0.02 + 0.05 * pressure or agent.age > 60:
                deaths += 1
                continue
            nxt.append(agent)
            if agent.energy > 3.0 and rng.random() < 0.22 * max(0.0, 1.2 - pressure):
                nxt.append(agent.child(rng))
                births += 1
        agents = nxt
        time.sleep(0.02)
    print("alive", len(agents), "births", births, "deaths", deaths)


if __name__ == "__main__":
    main()
