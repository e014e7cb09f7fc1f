#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""check.py FILE... - hold manifests against the published schema of Kubernetes, strictly, and against what pmi-start needs

One line for each thing that is wrong, "FILE: PLACE: WHAT"; the exit status is 1 then.
"""
import json
import os
import re
import sys

import jsonschema
import yaml

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kubernetes-1.30.json")


class Loader(yaml.SafeLoader):
    """In which a key that is given twice is an error."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"'{key.value}' is given twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def strict(node):
    """A definition as the API server reads it: no unknown fields; some kinds of text may be numbers."""
    if isinstance(node, list):
        return [strict(part) for part in node]
    if not isinstance(node, dict):
        return node
    made = {key: strict(part) for key, part in node.items()}
    if node.get("format") == "int-or-string":
        made["type"] = ["integer", "string"]
    if isinstance(node.get("properties"), dict) and "additionalProperties" not in node:
        made["additionalProperties"] = False
    return made


def read_schema():
    with open(SCHEMA, encoding="utf-8") as file:
        definitions = strict(json.load(file)["definitions"])
    definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"]["type"] = ["string", "number"]
    kinds = {}
    for name, definition in definitions.items():
        for kind in definition.get("x-kubernetes-group-version-kind", []):
            group = kind["group"] + "/" if kind["group"] else ""
            kinds[group + kind["version"], kind["kind"]] = name
    return definitions, kinds


def place(error):
    return ".".join(str(part) for part in error.absolute_path) or "the whole"


def against_schema(document, definitions, kinds):
    name = kinds.get((document.get("apiVersion"), document.get("kind")))
    if name is None:
        yield "kind", f"{document.get('apiVersion')} {document.get('kind')} is not in the schema"
        return
    schema = {"$ref": f"#/definitions/{name}", "definitions": definitions}
    for error in jsonschema.Draft4Validator(schema).iter_errors(document):
        yield place(error), error.message


def of_kind(documents, kind):
    return [document for document in documents if document.get("kind") == kind]


def job_needs(job, services):
    """What the manual says of pods, and what would be silent or late if it were not so."""
    name, spec = job["metadata"]["name"], job["spec"]
    pod = spec["template"]["spec"]
    words = [str(word) for word in pod["containers"][0]["command"]]
    nodes = [word for word in words if word.startswith("--nodes=")]
    secret = [word.partition("=")[2] for word in words if word.startswith("--secret-file=")]
    mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0].get("volumeMounts", [])}
    names = [container["name"] for container in pod["containers"]]
    volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
    yield spec.get("completionMode") == "Indexed", "completionMode has to be Indexed"
    yield spec["completions"] == spec["parallelism"], "all pods have to run at once: parallelism is completions"
    yield nodes == [f"--nodes={spec['completions']}"], "--nodes has to be completions"
    yield "--bootstrap=k8s" in words, "--bootstrap=k8s is missing"
    yield pod.get("subdomain") == name, "subdomain has to be the Job's name, as the Service's is"
    yield pod["restartPolicy"] == "Never", "a container that is started again would be turned away"
    yield any(is_its_service(service, name) for service in services), "there is no headless Service for it"
    for rule in spec.get("podFailurePolicy", {}).get("rules", []):
        codes = rule.get("onExitCodes", {})
        values, ends = codes.get("values", []), {69, 143}
        yield values == sorted(set(values)), "the API server wants exit codes in order, each once"
        yield codes.get("operator") != "In" or 0 not in values, "the API server refuses 0 among exit codes to look for"
        yield codes.get("containerName", "main") in names, "podFailurePolicy is of a container that is not there"
        if rule["action"] == "Ignore" and codes.get("operator") == "In":
            yield ends <= set(values), "pods of a run that lost one end with 69, of one whose pod 0 was evicted with 143"
        if rule["action"] == "FailJob" and codes.get("operator") == "NotIn":
            yield ends | {0} <= set(values), "69 and 143 are to begin anew"
    for path in secret:
        at = [volume for volume, folder in mounts.items() if path.startswith(folder + "/")]
        mounted = [volumes[volume]["secret"] for volume in at if "secret" in volumes.get(volume, {})]
        yield len(mounted) == 1, "--secret-file is not within a Secret"
        yield all(one.get("defaultMode", 0o644) & 0o007 == 0 for one in mounted), "others could read the secret"


def is_its_service(service, name):
    spec = service["spec"]
    return (service["metadata"]["name"] == name and spec.get("clusterIP") == "None"
            and spec.get("publishNotReadyAddresses") is True and spec.get("selector") == {"job-name": name})


def complaints(path, definitions, kinds):
    with open(path, encoding="utf-8") as file:
        try:
            documents = list(yaml.load_all(file, Loader))
        except yaml.YAMLError as error:
            yield "yaml", re.sub(r"\s+", " ", str(error))
            return
    for document in documents:
        for at, what in against_schema(document, definitions, kinds):
            yield f"{document.get('kind')} {at}", what
    for job in of_kind(documents, "Job"):
        try:
            for good, what in job_needs(job, of_kind(documents, "Service")):
                if not good:
                    yield "Job", what
        except (KeyError, TypeError) as error:
            yield "Job", f"{error!r} is missing"


def main():
    definitions, kinds = read_schema()
    wrong = 0
    for path in sys.argv[1:]:
        for at, what in complaints(path, definitions, kinds):
            print(f"{path}: {at}: {what}")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
