"""Prints an OpenAPI description of the RPCs over HTTP, made from a descriptor set with its comments.

usage: openapi.py DESCRIPTOR_SET VERSION
"""

import json
import re
import sys

from google.protobuf import descriptor_pb2

Field = descriptor_pb2.FieldDescriptorProto
# The canonical JSON of protobuf. 64-bit integers are strings there, since JavaScript's numbers are not exact.
SCALARS = {
    Field.TYPE_DOUBLE: {"type": "number", "format": "double"}, Field.TYPE_FLOAT: {"type": "number", "format": "float"},
    Field.TYPE_INT64: {"type": "string", "format": "int64"}, Field.TYPE_SINT64: {"type": "string", "format": "int64"},
    Field.TYPE_UINT64: {"type": "string", "format": "uint64"},
    Field.TYPE_FIXED64: {"type": "string", "format": "uint64"},
    Field.TYPE_INT32: {"type": "integer", "format": "int32"},
    Field.TYPE_UINT32: {"type": "integer", "format": "uint32"},
    Field.TYPE_BOOL: {"type": "boolean"}, Field.TYPE_STRING: {"type": "string"},
    Field.TYPE_BYTES: {"type": "string", "format": "byte"},
}
MESSAGES, ENUMS, SERVICES, FIELDS, METHODS = 4, 5, 6, 2, 2  # numbers of fields in descriptor.proto


def comments_of(file):
    """The comment of each declaration by its path in the file."""
    return {tuple(one.path): re.sub(r"\s*\n\s*", " ", (one.leading_comments + " " + one.trailing_comments)).strip()
            for one in file.source_code_info.location if one.leading_comments or one.trailing_comments}


def with_text(schema, text):
    return {"description": text, **schema} if text else schema


class Description:
    def __init__(self, files):
        self.declared, self.schemas, self.paths = {}, {}, {}
        for file in files:
            comments = comments_of(file)
            for numbers, kind in ((MESSAGES, file.message_type), (ENUMS, file.enum_type)):
                for i, one in enumerate(kind):
                    self.declared[f".{file.package}.{one.name}"] = one, (numbers, i), comments
        for file in files:
            comments = comments_of(file)
            for i, service in enumerate(file.service):
                for j, method in enumerate(service.method):
                    self.add_method(f"/{file.package}.{service.name}/{method.name}", service.name, method,
                                    comments.get((SERVICES, i, METHODS, j), ""))

    def reference(self, name):
        """A reference to the schema of a message or an enum, which is added with all that it needs."""
        short = name.rsplit(".", 1)[1]
        if short not in self.schemas:
            one, path, comments = self.declared[name]
            self.schemas[short] = {}
            if isinstance(one, descriptor_pb2.EnumDescriptorProto):
                schema = {"type": "string", "enum": [value.name for value in one.value]}
            else:
                properties = {field.json_name: self.field(field, comments.get((*path, FIELDS, i), ""))
                              for i, field in enumerate(one.field)}
                schema = {"type": "object", "additionalProperties": False, "properties": properties}
            self.schemas[short].update(with_text(schema, comments.get(path, "")))
        return {"$ref": "#/components/schemas/" + short}

    def field(self, field, text):
        schema = SCALARS[field.type] if field.type in SCALARS else self.reference(field.type_name)
        if field.label == Field.LABEL_REPEATED:
            schema = {"type": "array", "items": schema}
        return with_text(schema, text)

    def add_method(self, path, service, method, text):
        request, response = self.reference(method.input_type), self.reference(method.output_type)
        kind = "application/json"
        if method.server_streaming:
            kind = "application/connect+json"
            text += " Streams answers: each message of request and response has an envelope of 5 bytes before it."
        elif method.client_streaming:
            text += " Takes one message in JSON, or a stream of application/connect+json."
        self.paths[path] = {"post": {
            "operationId": method.name, "tags": [service], "description": text.strip(),
            "requestBody": {"required": True, "content": {kind: {"schema": request}}},
            "responses": {"200": {"description": "OK", "content": {kind: {"schema": response}}},
                          "default": {"$ref": "#/components/responses/Error"}}}}


def main():
    descriptors = descriptor_pb2.FileDescriptorSet()
    with open(sys.argv[1], "rb") as file:
        descriptors.ParseFromString(file.read())
    description = Description(descriptors.file)
    error = {"type": "object", "required": ["code"],
             "properties": {"code": {"type": "string"}, "message": {"type": "string"}}}
    json.dump({
        "openapi": "3.1.0",
        "info": {"title": "PrivateMail", "version": sys.argv[2],
                 "description": "The RPCs of privatemaild over HTTP by the Connect protocol (docs/api.md)."},
        "security": [{"key": []}],
        "paths": description.paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "responses": {"Error": {"description": "An error of the Connect protocol",
                                    "content": {"application/json": {"schema": error}}}},
            "schemas": description.schemas}}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
