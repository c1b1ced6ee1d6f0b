)öÿ`®ZLån5@$-ã±ZÇK®tÜŒ‹4tl­ş€encrypted
”
W
$9dc6175e-afb2-4041-85c8-cafd084e4ef4"vectorsB ã°ÄB˜üšûôÈ™o¹$'®Aäd›“L¤•™xR¸Uhp —{@¶›™¿:‰©º@ ÏÖ|ŸQP%õQ	ÙèÖ2‚h]Äx2booksXN`Š€xÇª
§{"bytes":10614,"delta":256,"keys_bytes":167968,"keys_digest":"7eaf973d31df95b7d461c9eae0b60964ca43980ad19168d2629478ea629cf7bb","known_blocks":0,"known_payload_blocks":0,"messages":1,"queries":1,"tables":["48178cb44f15efbcc7b91f50cdb4d8eb3d8a02114affdfedfee6b7315906dbf0"],"with_payloads":false}