"""Settings are read as PyTorch reads them, from the command line and from snapshots."""

import pytest

from tlmem.replaying.answers import settings_to_sweep
from tlmem.replaying.settings import DEFAULT, BadSetting, Settings, recorded_settings


@pytest.mark.parametrize(
    "line",
    [
        "",
        "expandable_segments:True",
        "max_split_size_mb:128,garbage_collection_threshold:0.8",
        "roundup_power2_divisions:8",
        "garbage_collection_threshold:0.8,per_process_memory_fraction:0.99",
        "max_non_split_rounding_mb:64,large_segment_size_mb:12",
        "roundup_power2_divisions:[1:1,2:2,4:4,8:8,16:16,32:1,64:1,128:1,256:1,512:2,1024:4,"
        "2048:8,4096:8,8192:8,16384:8,32768:8]",
    ],
)
def test_a_line_is_written_as_it_was_read(line: str) -> None:
    assert DEFAULT.changed([line]).conf == line


def test_equals_signs_and_several_words_are_the_same() -> None:
    pairs = ["max_split_size_mb=128", "expandable_segments=True"]

    assert DEFAULT.changed(pairs).conf == "expandable_segments:True,max_split_size_mb:128"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("max_split_size_mb:19", "from 20 to"),
        ("max_split_size_mb:-1", "whole number"),
        ("garbage_collection_threshold:1.0", "between 0 and 1"),
        ("roundup_power2_divisions:3", "not a power of two"),
        ("roundup_power2_divisions:[3:2]", "not a power of two"),
        ("expandable_segments:yes", "True or False"),
        ("backend:cudaMallocAsync", "cannot be replayed"),
        ("colour:blue", "is not a setting"),
        ("expandable_segments", "KEY=VALUE"),
        ("large_segment_size_mb:40,max_split_size_mb:30", "is too small"),
        ("large_segment_size_mb:21", "is odd"),
        ("large_segment_size_mb:10", "from 12 to"),
        ("per_process_memory_fraction:0", "from 0.01 to 1"),
        ("per_process_memory_fraction:1.5", "from 0.01 to 1"),
    ],
)
def test_what_is_no_setting_is_refused_in_a_sentence(line: str, words: str) -> None:
    with pytest.raises(BadSetting, match=words):
        DEFAULT.changed([line])


def test_a_snapshot_says_its_settings_by_keys_and_by_its_line() -> None:
    notes = {
        "allocator.PYTORCH_CUDA_ALLOC_CONF": "max_non_split_rounding_mb:40,backend:native",
        "allocator.max_split_size": str(128 << 20),
        "allocator.expandable_segments": "False",
        "allocator.garbage_collection_threshold": "0.8",
        "allocator.roundup_power2_divisions": ",".join(f"{1 << n}:4" for n in range(16)),
    }
    found, problems = recorded_settings(notes)

    assert problems == []
    assert found.conf == (
        "max_split_size_mb:128,max_non_split_rounding_mb:40,roundup_power2_divisions:4,"
        "garbage_collection_threshold:0.8"
    )


@pytest.mark.parametrize("size", ["-1", "18446744073709551615", "x", ""])
def test_no_limit_of_splitting_is_no_limit(size: str) -> None:
    assert recorded_settings({"allocator.max_split_size": size}) == (Settings(), [])


def test_another_backend_of_a_snapshot_is_said() -> None:
    line = {"allocator.PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}
    _, problems = recorded_settings(line)

    assert len(problems) == 1 and "cudaMallocAsync" in problems[0]


def test_a_sweep_has_the_recorded_settings_first_and_each_once() -> None:
    expandable = DEFAULT.changed(["expandable_segments:True"])
    tried = list(settings_to_sweep(expandable))

    assert tried[0] == (expandable, True)
    assert len({settings for settings, _ in tried}) == len(tried) > 10
