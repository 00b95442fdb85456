"""Build a form class for every incoming schema, validate one submission and move on."""
import random
import time

rng = random.Random(25)


class Field:
    def __init__(self, kind, limit):
        self.kind, self.limit = kind, limit

    def check(self, v):
        return isinstance(v, self.kind) and len(str(v)) <= self.limit


class Form:
    registry = {}

    def __init_subclass__(cls, **kw):
        super().__init_subclass__(**kw)
        Form.registry[f"{cls.__name__}#{len(Form.registry)}"] = cls

    def __init__(self, data):
        self.data = data

    def errors(self):
        return [k for k, f in self.fields.items() if not f.check(self.data.get(k))]


def schema():
    return {f"field_{rng.randrange(500)}": Field(rng.choice((int, str)), rng.randrange(1, 9)) for _ in range(8)}


def make_form(fields):
    def describe(self):
        return ",".join(sorted(fields))

    return type("SubmittedForm", (Form,), {"fields": fields, "describe": describe})


def main():
    bad = n = 0
    for tick in range(170):
        for _ in range(20):
            n += 1
            fields = schema()
            form = make_form(fields)({k: rng.choice((rng.randrange(10**6), "text")) for k in fields})
            bad += len(form.errors()) + (len(form.describe()) == 0)
        time.sleep(0.04)
    print(n, bad)


main()
