#!/usr/bin/python3
"""Checks the manifests against the types of the Kubernetes client: fields, types, required fields, and references.

usage: validate.py [FOLDER]    Needs the Debian packages python3-yaml and python3-kubernetes; no cluster.
"""
import pathlib
import re
import sys

import yaml
from kubernetes import client

MODELS = {("v1", "Namespace"): "V1Namespace", ("v1", "Service"): "V1Service",
          ("apps/v1", "StatefulSet"): "V1StatefulSet", ("apps/v1", "Deployment"): "V1Deployment",
          ("networking.k8s.io/v1", "NetworkPolicy"): "V1NetworkPolicy",
          ("policy/v1", "PodDisruptionBudget"): "V1PodDisruptionBudget"}
PLAIN = {"str": str, "int": int, "bool": bool, "object": (str, int)}  # object: an int or a string, as of a port


def faults(value, kind, where):
    """Errors of `value` as a `kind` of the client; each begins with the path."""
    if match := re.fullmatch(r"list\[(.*)\]", kind):
        if not isinstance(value, list):
            return [f"{where}: must be a list, but is {value!r}"]
        return [fault for i, one in enumerate(value) for fault in faults(one, match[1], f"{where}[{i}]")]
    if match := re.fullmatch(r"dict\(str, (.*)\)", kind):
        if not isinstance(value, dict):
            return [f"{where}: must be a mapping, but is {value!r}"]
        return [fault for name, one in value.items() for fault in faults(one, match[1], f"{where}.{name}")]
    if kind in PLAIN:
        fits = isinstance(value, PLAIN[kind]) and (kind == "bool" or not isinstance(value, bool))
        return [] if fits else [f"{where}: must be {kind}, but is {value!r}"]
    return faults_of_model(value, getattr(client, kind), where)


def faults_of_model(value, model, where):
    if not isinstance(value, dict):
        return [f"{where}: must be a mapping, but is {value!r}"]
    types = {model.attribute_map[name]: kind for name, kind in model.openapi_types.items()}
    found = [f"{where}.{name}: {model.__name__} has no such field" for name in value if name not in types]
    for name in value.keys() & types.keys():
        found += faults(value[name], types[name], f"{where}.{name}")
    if found:
        return found
    try:  # the client's own constructors refuse what lacks a required field
        model(**{name: value.get(json_name) for name, json_name in model.attribute_map.items()})
    except ValueError as error:
        return [f"{where}: {error}"]
    return []


def faults_of_workload(workload, objects, configmaps):
    """Selectors, ports, volumes and names of a StatefulSet or Deployment that refer to missing objects."""
    spec = workload["spec"]
    labels = spec["template"]["metadata"]["labels"]
    pod = spec["template"]["spec"]
    ports = {port["name"] for container in pod["containers"] for port in container["ports"]}
    volumes = {one["name"] for one in pod["volumes"]}
    volumes |= {one["metadata"]["name"] for one in spec.get("volumeClaimTemplates", [])}
    sources = [source for one in pod["volumes"] for source in one.get("projected", {}).get("sources", [one])]
    named = {one["configMap"]["name"] for one in sources if "configMap" in one}
    used = [(container[probe].get("httpGet") or container[probe]["tcpSocket"])["port"] for container in
            pod["containers"] for probe in container if probe.endswith("Probe")]
    for (kind, _), one in objects.items():
        if not selector_of(one, kind).items() <= labels.items():
            continue
        if kind == "Service":
            used += [port["targetPort"] for port in one["spec"]["ports"]]
        if kind == "NetworkPolicy":
            used += [port["port"] for rule in one["spec"]["ingress"] for port in rule["ports"]]
    found = [f"port {name} is no container's" for name in used if name not in ports]
    found += [f"volume {one['name']} is mounted, but not declared" for container in pod["containers"]
              for one in container["volumeMounts"] if one["name"] not in volumes]
    found += [f"ConfigMap {name} is not generated" for name in named - configmaps]
    if "serviceName" in spec and ("Service", spec["serviceName"]) not in objects:
        found.append(f"Service {spec['serviceName']} is missing")
    return found


def selector_of(one, kind):
    if kind == "Namespace":
        return {}
    selector = one["spec"].get("selector") or one["spec"]["podSelector"]
    return selector.get("matchLabels", selector)


def faults_of_references(objects, configmaps):
    workloads = [one for (kind, _), one in objects.items() if kind in ("StatefulSet", "Deployment")]
    found = [fault for one in workloads for fault in faults_of_workload(one, objects, configmaps)]
    found += [f"selector {selector} selects no pod" for (kind, _), one in objects.items()
              for selector in [selector_of(one, kind)]
              if not any(selector.items() <= workload["spec"]["template"]["metadata"]["labels"].items()
                         for workload in workloads)]
    return found


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    objects, found = {}, []
    for name in kustomization["resources"]:
        for one in yaml.safe_load_all((folder / name).read_text()):
            model = MODELS.get((one.get("apiVersion"), one.get("kind")))
            objects[one["kind"], one["metadata"]["name"]] = one
            found += faults(one, model, f"{name}: {one['kind']}") if model else [f"{name}: unknown kind {one['kind']}"]
    generated = kustomization["configMapGenerator"]
    found += [f"{folder / file} is missing" for one in generated for file in one["files"]
              if not (folder / file).exists()]
    found += [] if found else faults_of_references(objects, {one["name"] for one in generated})
    print("\n".join(found) if found else f"{len(objects)} objects are valid")
    return 1 if found else 0


sys.exit(main())
