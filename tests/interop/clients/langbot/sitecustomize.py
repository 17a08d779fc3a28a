"""Stands in for what overrides.txt leaves out: LangBot imports these when it starts and uses none of them
here. Any name in them is a class that takes anything."""

import importlib.abc
import importlib.util
import sys

ABSENT = """aiocqhttp boto3 botocore chromadb ebooklib glide langchain pandas pymilvus PyPDF2 docx
qdrant_client""".split()


class Anything(Exception):
    def __init__(self, *_, **__):
        super().__init__()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything

    __call__ = __getitem__ = lambda self, *_, **__: self


class StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ABSENT:
            return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        def attribute(name):
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (Anything,), {})

        module.__getattr__ = attribute


sys.meta_path.append(StandIn())
