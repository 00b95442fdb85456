# memoised recursion (python objects): the memo is cleared per request, requests get larger, 5 requests in the run
import time, random, functools
random.seed(17)
memo = {}
def edit(a, b, i, j):
    key = (i, j)
    if key in memo: return memo[key][0]
    if i == 0 or j == 0: r = (i + j, a[:i] + b[:j])
    else:
        c = min(edit(a, b, i - 1, j) + 1, edit(a, b, i, j - 1) + 1, edit(a, b, i - 1, j - 1) + (a[i - 1] != b[j - 1]))
        r = (c, a[max(0, i - 40):i] + b[max(0, j - 40):j])
    memo[key] = r
    return r[0]
t0 = time.monotonic(); k = 0; out = 0
for req in range(5):
    a = "".join(random.choices("acgt", k=400)); b = "".join(random.choices("acgt", k=150 + 25 * req))
    memo.clear()
    for i in range(0, 400, 4):
        out += edit(a, b, i, len(b)); k += 1
        time.sleep(max(0, t0 + k * 0.016 - time.monotonic()))
print(out, len(memo))
