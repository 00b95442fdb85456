"""Drive a monitoring dashboard whose chart widgets subscribe to a data feed and are replaced when the user switches tabs."""
import functools
import time

import numpy as np


class Feed:
    def __init__(self):
        self.callbacks = []

    def subscribe(self, callback):
        self.callbacks.append(callback)

    def unsubscribe(self, callback):
        if callback in self.callbacks:
            self.callbacks.remove(callback)

    def publish(self, sample):
        for callback in list(self.callbacks):
            callback(sample)


class Chart:
    def __init__(self, feed, channel):
        self.feed = feed
        self.channel = channel
        self.ring = np.zeros((3, 3000))
        self.at = 0
        self.visible = True
        feed.subscribe(functools.partial(self.on_sample, channel=channel))

    def on_sample(self, sample, channel):
        if not self.visible:
            return
        self.ring[:, self.at % 3000] = sample[channel:channel + 3]
        self.at += 1

    def render(self):
        return np.histogram(self.ring[0], 64)[0]

    def close(self):
        self.visible = False
        self.feed.unsubscribe(functools.partial(self.on_sample, channel=self.channel))


def main():
    rng = np.random.default_rng(3)
    feed = Feed()
    drawn = 0
    tab = []
    for step in range(600):
        if step % 12 == 0:
            for chart in tab:
                chart.close()
            tab = [Chart(feed, int(c)) for c in rng.integers(0, 12, 6)]
        feed.publish(rng.normal(size=16))
        for chart in tab[:2]:
            drawn += int(chart.render().max() > 0)
        time.sleep(0.007)
    print("rendered", drawn)


if __name__ == "__main__":
    main()
