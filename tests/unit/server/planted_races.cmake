# The core load finds a race where there is one: each of these programs is core_load_test with a
# source file of the core in which one function no longer takes its lock.

add_custom_target(planted_races)

# privatemail_planted_race(FILE FUNCTION)
# FILE of the core; FUNCTION as in "Catalog::Find", the first definition of that name.
function(privatemail_planted_race file function)
  file(READ ${CMAKE_SOURCE_DIR}/${file} source)
  string(FIND "${source}" "${function}(" start)
  if(start EQUAL -1)
    message(FATAL_ERROR "${file} does not define ${function}")
  endif()
  string(SUBSTRING "${source}" 0 ${start} before)
  string(SUBSTRING "${source}" ${start} -1 after)
  set(lock "const std::lock_guard<std::mutex> guard(mutex_);")
  string(FIND "${after}" "${lock}" place)
  string(FIND "${after}" "\n}\n" end)
  if(place EQUAL -1 OR place GREATER end)
    message(FATAL_ERROR "${function} in ${file} takes no lock that could be left out")
  endif()
  string(LENGTH "${lock}" length)
  math(EXPR behind "${place} + ${length}")
  string(SUBSTRING "${after}" 0 ${place} head)
  string(SUBSTRING "${after}" ${behind} -1 tail)
  string(MAKE_C_IDENTIFIER "race_in_${function}" name)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc CONTENT "${before}${head}${tail}" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${file})
  privatemail_test_program(${name} LABELS unit core
    SOURCES core_calls.cc core_load_test.cc snapshots.cc ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc
    LINKS server_fixtures privatemail::access privatemail::engine)
  add_dependencies(planted_races ${name})
  set_tests_properties(${name} PROPERTIES
    ENVIRONMENT "TSAN_OPTIONS=halt_on_error=1"
    PASS_REGULAR_EXPRESSION "WARNING: ThreadSanitizer: data race")
endfunction()

privatemail_planted_race(server/access/admission.cc Admission::Leave)
privatemail_planted_race(server/access/audit_log.cc AuditLog::Reopen)
privatemail_planted_race(server/access/key_ring.cc KeyRing::Authenticate)
privatemail_planted_race(server/access/rate_limits.cc RateLimits::Take)
privatemail_planted_race(common/base/workers.cc Workers::Run)
privatemail_planted_race(server/engine/catalog.cc Catalog::Find)
privatemail_planted_race(server/engine/later_work.cc LaterWork::Add)
privatemail_planted_race(server/engine/payload_columns.cc PayloadColumns::Kept)
