"""Runs the engines in turns and prints what each took, and resdex beside it. See `run`."""

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import engines

KINDS = {".md", ".rs", ".txt", ".py"}
# Larger files are tables of data rather than anything that is read.
MAX_FILE = 200_000


class Corpus:
    """Copies of text files, and the passages that resdex cuts them into."""

    def __init__(self, source, folder, megabytes):
        self.folder = folder
        folder.mkdir()
        files = [file for file in source.rglob("*") if file.suffix in KINDS and file.is_file()]
        seen, copied = set(), 0
        for number, file in enumerate(sorted(files, key=lambda file: (file.suffix != ".md", file))):
            data = file.read_bytes()
            # Crates have the same licences and templates many times.
            if not data.strip() or len(data) > MAX_FILE or data in seen:
                continue
            seen.add(data)
            copied += len(data)
            (folder / f"{number}-{file.name}").write_bytes(data)
            if copied >= megabytes * 1e6:
                break
        copies = sorted(folder.iterdir())
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            self.passages = dict(zip((copy.name for copy in copies), threads.map(passages, copies)))
        self.bytes = sum(len(text.encode()) for texts in self.passages.values() for text in texts)
        self.count = sum(map(len, self.passages.values()))

    def queries(self, count):
        """Pairs of words that stand in the texts, the same in each run."""
        choose = random.Random(7)
        texts = [text for texts in self.passages.values() for text in texts]
        words = lambda: re.findall(r"\b[a-zA-Z]{4,19}\b", choose.choice(texts)) or ["page"]
        return [f"{choose.choice(words())} {choose.choice(words())}" for _ in range(count)]


def passages(file):
    found = subprocess.run([engines.PROGRAM, "extract", "--json", file], capture_output=True, check=True)
    return [chunk["text"] for chunk in json.loads(found.stdout).get("chunks", [])]


def took(call, *arguments):
    started = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - started


def share(times, part):
    ordered = sorted(times)
    return ordered[round((len(ordered) - 1) * part)]


def shown(seconds):
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.2f} ms"


def update(engine, number, word):
    """Changes a note and asks until its new word is found."""
    engine.update(number, word)
    deadline = time.monotonic() + 60
    while not any(word in snippet for snippet in engine.search(word)):
        if time.monotonic() > deadline:
            raise SystemExit(f"{engine.name} never finds {word}")


def goal(value, denominator, ratio, is_met, bound, what):
    print(f"G15 {value} {denominator} {ratio:.2f} {'met' if is_met else 'missed'} {bound}: {what}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--mb", type=float, default=10)
    arguments = parser.parse_args()
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    with tempfile.TemporaryDirectory(prefix="resdex-peers-") as scratch:
        scratch = Path(scratch)
        source = arguments.folder or cargo / "registry/src"
        measure(Corpus(source, scratch / "corpus", arguments.mb), scratch)


def measure(corpus, scratch):
    print(f"-- {corpus.bytes / 1e6:.1f} MB, {len(corpus.passages)} documents, {corpus.count} passages")
    fts5, resdex = engines.Fts5(), engines.Resdex()
    every = [resdex, fts5, engines.Tantivy(), engines.Bm25s()]
    if engines.QMD:
        every.append(engines.Qmd())
    names = [engine.name for engine in every]
    indexing, asking, updating, commands = ({name: [] for name in names} for _ in range(4))
    rounds = 3
    for turn in range(rounds):
        for engine in every:
            folder = scratch / engine.name / str(turn)
            folder.mkdir(parents=True)
            indexing[engine.name].append(took(engine.index, corpus, folder))
            if turn < rounds - 1:
                engine.close()
                shutil.rmtree(folder, ignore_errors=True)
    # The first round only fills the caches.
    for turn in range(3):
        for number, query in enumerate(corpus.queries(200)):
            for engine in every:
                # Started anew for each question, qmd isn't any faster the second time.
                if engine.name != "qmd" or (turn == 1 and number < 20):
                    seconds = took(engine.search, query)
                    if turn > 0:
                        asking[engine.name].append(seconds)
    for query in corpus.queries(20):
        for engine in every:
            if hasattr(engine, "command"):
                commands[engine.name].append(took(engine.command, query))
    for number in range(60):
        for engine in every:
            # These index everything again.
            if number < 5 or engine.name not in ("bm25s", "qmd"):
                updating[engine.name].append(took(update, engine, number, f"changed{number}word"))
    megabytes = corpus.bytes / 1e6
    speed = {name: megabytes / statistics.median(indexing[name]) for name in names}
    print("| | indexing | query p50 / p99 | change → found p50 / p99 | as a command | size / text |")
    print("|---|---|---|---|---|---|")
    for engine in every:
        name = engine.name
        pair = lambda times: f"{shown(share(times, 0.5))} / {shown(share(times, 0.99))}"
        command = shown(share(commands[name], 0.5)) if commands[name] else ""
        size = engine.size() / corpus.bytes
        print(
            f"| {name} | {speed[name]:.1f} MB/s | {pair(asking[name])} | {pair(updating[name])}"
            f" | {command} | {size:.2f} |"
        )
    query, theirs = (share(asking[name], 0.5) for name in (resdex.name, fts5.name))
    ratio = theirs / query
    goal(shown(query), shown(theirs), ratio, ratio >= 20, "≥ 20.00", "a query (p50), times faster than FTS5")
    ours, theirs = speed[resdex.name], speed[fts5.name]
    what = "start → files read, cut and searchable, beside FTS5 given the passages"
    goal(f"{ours:.1f}MB/s", f"{theirs:.1f}MB/s", ours / theirs, ours >= theirs, "≥ 1.00", what)
    fresh, theirs = (share(updating[name], 0.5) for name in (resdex.name, fts5.name))
    ratio = fresh / theirs
    what = "notification → read and found (p50), beside an update and a query of FTS5"
    goal(shown(fresh), shown(theirs), ratio, ratio <= 4, "≤ 4.00", what)
    for engine in every:
        engine.close()


main()
