# Debian packages by CPack: the preset `packages`. Programs and modules are there twice, for any x86-64 processor and
# for those with AVX2 and FMA; the second ones come from the preset `release`. A launcher in bin/ starts one of the two.
if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" OR NOT CMAKE_LIBRARY_ARCHITECTURE)
  message(FATAL_ERROR "packages are for Debian on x86_64")
endif()
set(tuned ${CMAKE_SOURCE_DIR}/build/release)
foreach(program client/privatemail server/privatemaild)
  cmake_path(GET program PARENT_PATH component)
  cmake_path(GET program FILENAME name)
  install(PROGRAMS ${tuned}/${program} DESTINATION libexec RENAME ${name}-x86-64-v3 COMPONENT ${component})
  add_executable(launch_${name} ${CMAKE_CURRENT_LIST_DIR}/launcher.cc)
  target_compile_definitions(launch_${name} PRIVATE PROGRAM="${CMAKE_INSTALL_FULL_BINDIR}/${name}")
  target_link_options(launch_${name} PRIVATE -Wl,--as-needed) # no libstdc++
  set_target_properties(launch_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY launchers)
  install(TARGETS launch_${name} DESTINATION bin COMPONENT ${component})
endforeach()
foreach(folder . evaluation)
  install(FILES ${tuned}/client/python/privatemail/${folder}/_native${PYTHON_MODULE_EXTENSION} COMPONENT python
    DESTINATION ${PRIVATEMAIL_PYTHON_FOLDER}/privatemail/x86-64-v3/${folder})
endforeach()
get_directory_property(sdk_libraries DIRECTORY ${CMAKE_SOURCE_DIR}/client/sdk DEFINITION sdk_libraries)
foreach(library ${sdk_libraries})
  get_target_property(folder ${library} BINARY_DIR)
  cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${CMAKE_BINARY_DIR})
  install(FILES ${tuned}/${folder}/lib${library}.a COMPONENT sdk
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/privatemail/x86-64-v3)
endforeach()

# The unit is as in deploy/systemd but for the folder of the program.
set(generated ${CMAKE_CURRENT_BINARY_DIR}/packages)
file(READ ${CMAKE_SOURCE_DIR}/deploy/systemd/privatemaild.service unit)
string(REPLACE "/usr/local/bin/" "/usr/bin/" unit "${unit}")
file(WRITE ${generated}/privatemaild.service "${unit}")
install(FILES ${generated}/privatemaild.service DESTINATION /lib/systemd/system COMPONENT server)
install(FILES ${CMAKE_SOURCE_DIR}/deploy/privatemaild.toml DESTINATION /etc/privatemail COMPONENT server)
install(FILES ${CMAKE_SOURCE_DIR}/deploy/logrotate/privatemaild DESTINATION /etc/logrotate.d COMPONENT server)
file(WRITE ${generated}/conffiles "/etc/logrotate.d/privatemaild\n/etc/privatemail/privatemaild.toml\n")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "The PrivateMail Authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # each package has its own
set(CPACK_PACKAGE_CONTACT "The PrivateMail Authors <privatemail@example.org>" CACHE STRING
  "Name and address of who makes the packages")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL client server sdk python c)

file(WRITE ${generated}/copyright
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: PrivateMail

Files: *
Copyright: 2026 The PrivateMail Authors
License: Apache-2.0

Files: usr/share/privatemail/models/*
Copyright: Google LLC
License: Apache-2.0
 On Debian systems the text of the license is in /usr/share/common-licenses/Apache-2.0.
")
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)

# package(COMPONENT NAME SECTION SYNOPSIS DESCRIPTION): what all packages have.
macro(package component name section synopsis description)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${synopsis}\n${description}")
  file(WRITE ${generated}/${name}
    "${name} (${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
    "  * Release ${PROJECT_VERSION}.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  execute_process(COMMAND gzip -9nc ${generated}/${name} OUTPUT_FILE ${generated}/${name}.gz COMMAND_ERROR_IS_FATAL ANY)
  install(FILES ${generated}/${name}.gz RENAME changelog.Debian.gz DESTINATION share/doc/${name} COMPONENT ${component})
  install(FILES ${generated}/copyright DESTINATION share/doc/${name} COMPONENT ${component})
endmacro()

package(client privatemail net "private nearest-neighbour search: command line"
  "Finds the most similar items of a server's collection without telling the
server which picture or feature vector is searched. Queries are
differentially private and charged to a budget on this machine.")
set(CPACK_DEBIAN_CLIENT_PACKAGE_SUGGESTS "python3-privatemail, privatemaild")

package(server privatemaild net "private nearest-neighbour search: daemon"
  "Serves collections of feature vectors to clients that do not tell it what
they search: the package privatemail, its SDK and its Python package.")
set(CPACK_DEBIAN_SERVER_PACKAGE_RECOMMENDS "libopenblas0-pthread, privatemail")
set(CPACK_DEBIAN_SERVER_PACKAGE_SUGGESTS logrotate)
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA ${generated}/conffiles ${CMAKE_CURRENT_LIST_DIR}/server/postinst
  ${CMAKE_CURRENT_LIST_DIR}/server/prerm ${CMAKE_CURRENT_LIST_DIR}/server/postrm)

package(sdk libprivatemail-dev libdevel "private nearest-neighbour search: C++ library"
  "Static libraries, headers, protocol files and the CMake package privatemail,
for programs that search collections of privatemaild.")
set(CPACK_DEBIAN_SDK_PACKAGE_DEPENDS "libabsl-dev, libeigen3-dev, libgrpc++-dev, libprotobuf-dev, libsqlite3-dev, \
libssl-dev, protobuf-compiler-grpc")
set(CPACK_DEBIAN_SDK_PACKAGE_SUGGESTS "cmake, libjpeg62-turbo-dev, libopencv-core-dev, libopencv-dnn-dev, \
libopencv-imgproc-dev, libopencv-objdetect-dev, libpng-dev, libwebp-dev, zlib1g-dev")

package(python python3-privatemail python "private nearest-neighbour search: Python package"
  "Private queries from Python programs and notebooks, and the evaluation behind
`privatemail evaluate`.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.11), python3 (<< 3.12), python3-numpy")
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "privatemaild, python3-jinja2, python3-matplotlib, python3-scipy, \
python3-sklearn, python3-tqdm")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/python/postinst
  ${CMAKE_CURRENT_LIST_DIR}/python/prerm)

package(c libprivatemail-encrypted0 libs "private nearest-neighbour search: C library"
  "Exact private searches for programs that bring their own transport, with header
and example; needs neither gRPC nor OpenSSL.")
# CPack makes shlibs for all packages or none, and Python's modules are no libraries.
file(WRITE ${generated}/shlibs
  "libprivatemail_encrypted ${PROJECT_VERSION_MAJOR} libprivatemail-encrypted0 (>= ${PROJECT_VERSION})\n")
file(WRITE ${generated}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_C_PACKAGE_CONTROL_EXTRA ${generated}/shlibs ${generated}/triggers)
set(CPACK_DEBIAN_C_PACKAGE_SUGGESTS "curl")
include(CPack)
