// The key by which this operator signs the images that it makes.
#ifndef PRIVATEMAIL_SERVER_SERVICES_IMAGE_SIGNER_H_
#define PRIVATEMAIL_SERVER_SERVICES_IMAGE_SIGNER_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/rpc/pem.h"
#include "server/image/images.h"

namespace privatemail::server {

// An Ed25519 key. Immutable, thread-safe.
class ImageSigner {
 public:
  // Reads the PEM file, or creates it with mode 0600. FAILED_PRECONDITION: it cannot be read or
  // written, or holds no Ed25519 key. INTERNAL: OpenSSL failed.
  static absl::StatusOr<ImageSigner> LoadOrCreate(const std::string& path);

  // The image with this digest. INTERNAL: OpenSSL failed.
  absl::StatusOr<Images::Signature> Sign(absl::string_view digest) const;

 private:
  ImageSigner(PrivateKey key, std::string public_key)
      : key_(std::move(key)), public_key_(std::move(public_key)) {}

  PrivateKey key_;
  std::string public_key_;  // kSignerBytes
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_IMAGE_SIGNER_H_
