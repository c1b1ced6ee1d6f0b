#include "server/services/image_signer.h"

#include <openssl/evp.h>

#include <filesystem>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/image/image_header.h"

namespace privatemail::server {
namespace {

constexpr char kWhat[] = "the key that signs images";

absl::StatusOr<std::string> ReadOrCreate(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error) || error) return ReadFile(kWhat, path);
  const PrivateKey key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  if (key == nullptr) return absl::InternalError(OpenSslReason("make a key that signs images"));
  PM_ASSIGN_OR_RETURN(std::string pem, ToPem(key.get()));
  PM_RETURN_IF_ERROR(WriteFileAtomically(path, pem, 0600));
  return pem;
}

}  // namespace

absl::StatusOr<ImageSigner> ImageSigner::LoadOrCreate(const std::string& path) {
  PM_ASSIGN_OR_RETURN(const std::string pem, ReadOrCreate(path));
  const std::string what = absl::StrCat(kWhat, ", ", path);
  PM_ASSIGN_OR_RETURN(PrivateKey key, ParsePrivateKey(what, pem));
  std::string public_key(kSignerBytes, '\0');
  size_t size = public_key.size();
  if (EVP_PKEY_get_id(key.get()) != EVP_PKEY_ED25519 ||
      EVP_PKEY_get_raw_public_key(key.get(), reinterpret_cast<unsigned char*>(public_key.data()),
                                  &size) != 1) {
    return absl::FailedPreconditionError(absl::StrCat(what, ", must be an Ed25519 key"));
  }
  return ImageSigner(std::move(key), std::move(public_key));
}

absl::StatusOr<Images::Signature> ImageSigner::Sign(absl::string_view digest) const {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  const std::string text = ImageSignatureText(digest);
  std::string signature(kSignatureBytes, '\0');
  size_t size = signature.size();
  if (context == nullptr ||
      EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) != 1 ||
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                     reinterpret_cast<const unsigned char*>(text.data()), text.size()) != 1) {
    return absl::InternalError(OpenSslReason("sign an image"));
  }
  return Images::Signature{std::move(signature), public_key_};
}

}  // namespace privatemail::server
