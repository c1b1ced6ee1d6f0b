/** An error with the code of its status: "INVALID_ARGUMENT", "UNAVAILABLE", ... */
export class PrivateMailError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "PrivateMailError";
    this.code = code;
  }
}
