"""What is compared: each indexes passages, answers with the best ten and their snippets, and takes up
a changed document. `size` is what it keeps on disk or in memory."""

import http.client
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import bm25s
import tantivy

from notes import note

PROGRAM = os.environ["RESDEX_PEERS_PROGRAM"]
QMD = os.environ.get("RESDEX_PEERS_QMD")
TOP = 10


def folder_bytes(folder):
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())


class Fts5:
    """SQLite, with the journal and the syncing that programs choose for it."""

    name = "SQLite FTS5"

    def index(self, corpus, folder):
        self.folder = folder
        self.db = sqlite3.connect(folder / "db", isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = NORMAL")
        self.db.execute(
            "CREATE VIRTUAL TABLE passages USING fts5(text, uri UNINDEXED, tokenize = 'porter unicode61')"
        )
        self.rows = {}
        self.db.execute("BEGIN")
        for uri, passages in corpus.passages.items():
            self.rows[uri] = [self._add(uri, text) for text in passages]
        self.db.execute("COMMIT")

    def _add(self, uri, text):
        return self.db.execute("INSERT INTO passages(text, uri) VALUES (?, ?)", (text, uri)).lastrowid

    def search(self, query):
        words = " OR ".join(f'"{word}"' for word in query.split())
        rows = self.db.execute(
            "SELECT uri, snippet(passages, 0, '', '', '…', 32) FROM passages"
            " WHERE passages MATCH ? ORDER BY rank LIMIT ?",
            (words, TOP),
        )
        return [snippet for _, snippet in rows]

    def update(self, number, word):
        uri = f"note:{number}"
        self.db.execute("BEGIN")
        for row in self.rows.get(uri, []):
            self.db.execute("DELETE FROM passages WHERE rowid = ?", (row,))
        self.rows[uri] = [self._add(uri, note(number, word))]
        self.db.execute("COMMIT")

    def size(self):
        self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return folder_bytes(self.folder)

    def close(self):
        self.db.close()


class Tantivy:
    name = "tantivy-py"

    def index(self, corpus, folder):
        self.folder = folder
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("uri", stored=True, tokenizer_name="raw")
        builder.add_text_field("text", stored=True, tokenizer_name="en_stem")
        self.schema = builder.build()
        self.engine = tantivy.Index(self.schema, path=str(folder))
        self.writer = self.engine.writer(heap_size=100_000_000, num_threads=2)
        for uri, passages in corpus.passages.items():
            for text in passages:
                self.writer.add_document(tantivy.Document(uri=uri, text=text))
        self.writer.commit()
        self.engine.reload()

    def search(self, query):
        searcher = self.engine.searcher()
        query = self.engine.parse_query(query, ["text"])
        snippets = tantivy.SnippetGenerator.create(searcher, query, self.schema, "text")
        hits = searcher.search(query, TOP).hits
        return [snippets.snippet_from_doc(searcher.doc(place)).fragment() for _, place in hits]

    def update(self, number, word):
        uri = f"note:{number}"
        self.writer.delete_documents("uri", uri)
        self.writer.add_document(tantivy.Document(uri=uri, text=note(number, word)))
        self.writer.commit()
        self.engine.reload()

    def size(self):
        return folder_bytes(self.folder)

    def close(self):
        self.writer.wait_merging_threads()


class Bm25s:
    """It has no updates: whatever changes, everything is indexed again."""

    name = "bm25s"

    def index(self, corpus, folder):
        self.folder = folder
        self.texts = [text for passages in corpus.passages.values() for text in passages]
        self.notes = {}
        self._build()

    def _build(self):
        self.all = self.texts + list(self.notes.values())
        self.model = bm25s.BM25()
        self.model.index(bm25s.tokenize(self.all, stopwords="en", show_progress=False), show_progress=False)

    def search(self, query):
        words = bm25s.tokenize(query, stopwords="en", show_progress=False)
        places, _ = self.model.retrieve(words, k=TOP, show_progress=False)
        # It has no snippets either.
        return [self.all[place][:200] for place in places[0]]

    def update(self, number, word):
        self.notes[number] = note(number, word)
        self._build()

    def size(self):
        self.model.save(self.folder)
        return folder_bytes(self.folder)

    def close(self):
        pass


class Resdex:
    """The daemon, asked over its socket; its corpus is a folder, its notes are those of an MCP server
    that says when one has changed."""

    name = "resdex"

    def index(self, corpus, folder):
        self.folder, self.socket, feed = folder, folder / "sock", folder / "feed"
        config = folder / "resdex.toml"
        command = json.dumps([str(Path(__file__).with_name("feed.py")), str(feed)])
        config.write_text(
            f"[servers.corpus]\nfiles = {json.dumps(str(corpus.folder))}\n"
            f"[servers.feed]\ncommand = {json.dumps(sys.executable)}\nargs = {command}\n"
        )
        arguments = ["serve", "--config", config, "--state", folder / "state", "--socket", self.socket]
        self.child = subprocess.Popen(
            [PROGRAM, *map(str, arguments)], env={**os.environ, "RESDEX_LOG": "error"}
        )
        self.connection = None
        while not self._is_live():
            if self.child.poll() is not None:
                sys.exit("resdex serve has ended")
            time.sleep(0.005)
        self.feed = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.feed.connect(str(feed))

    def _is_live(self):
        try:
            servers = json.loads(self._ask("GET", "/v1/status"))["servers"]
        except OSError:
            self.connection = None
            return False
        return len(servers) == 2 and all(server["state"] == "live" for server in servers)

    def _ask(self, method, path, body=None):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("localhost")
            self.connection.sock = socket.socket(socket.AF_UNIX)
            self.connection.sock.connect(str(self.socket))
        self.connection.request(method, path, body)
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            sys.exit(f"resdex answered {answer.status}: {body!r}")
        return body

    def search(self, query):
        found = json.loads(self._ask("POST", "/v1/search", json.dumps({"query": query, "limit": TOP})))
        return [hit["snippet"] for hit in found["hits"]]

    def update(self, number, word):
        """Only says so: `search` finds it when it has been read and indexed."""
        self.feed.send(f"{number} {note(number, word)}".encode())

    def command(self, query):
        subprocess.run(
            [PROGRAM, "search", "--socket", self.socket, query], check=True, capture_output=True
        )

    def size(self):
        return folder_bytes(self.folder / "state" / "index")

    def close(self):
        self.child.terminate()
        self.child.wait()


class Qmd:
    """A program that is started for each question."""

    name = "qmd"

    def index(self, corpus, folder):
        self.folder, self.notes = folder, folder / "notes"
        self.notes.mkdir()
        (self.notes / "0.md").write_text("# Notes\n")
        for name, files in [("corpus", corpus.folder), ("notes", self.notes)]:
            self._run("collection", "add", str(files), "--name", name, "--mask", "**/*")

    def _run(self, *arguments):
        home = {**os.environ, "HOME": str(self.folder), "XDG_CACHE_HOME": str(self.folder / "cache")}
        home["XDG_CONFIG_HOME"] = str(self.folder / "config")
        done = subprocess.run([QMD, *arguments], env=home, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"qmd {arguments[0]}: {done.stderr}")
        return done.stdout

    def search(self, query):
        return [self._run("search", query, "-n", str(TOP))]

    command = search

    def update(self, number, word):
        (self.notes / f"{number}.md").write_text(f"# Note\n\n{note(number, word)}\n")
        self._run("update")

    def size(self):
        return folder_bytes(self.folder / "cache")

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)
