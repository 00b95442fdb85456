import random
import sys
import time
import networkx as nx
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
G = nx.Graph()
r = random.Random(1)
deg = 0.0
for tick in range(int(T * 120)):
    base = tick * 15
    for k in range(15):
        G.add_node(base + k, label="host-%d" % (base + k))
        G.add_edge(base + k, r.randrange(base + k + 1), weight=r.random(), seen=tick)
    sample = [G.degree(r.randrange(base + 15)) for _ in range(30)]
    deg += float(np.mean(sample))
    time.sleep(0.0068)
print(G.number_of_nodes(), round(deg, 2))
