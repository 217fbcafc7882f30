package test

// limits are the sentences of the sections "Limits of the reference" of the chapters about TLS, requests and credentials, and about
// srt proxy: what srt does instead, and the tests that hold it.
var limits = []struct{ what, tests string }{
	{"EC keys are accepted", "TestLoad TestGenerateOptions"}, // 1
	{"expired and non-CA certificates are refused at the start", "TestLoadRefuses TestTLS_Case2"},
	{"an ephemeral key is P-256", "TestEphemeralCA"},
	{"paths of an authority may begin with ~", "TestLoadPaths TestTLS_Case4"},
	{"an ephemeral key is never a file", "TestNoKeyOnDisk TestTLS_Case4"},
	{"caKeyPath cannot be read by commands", "TestTLS_Case4 TestTLS_9_KeyWithASecondName TestTrustFiles_TLS9"},
	{"the bundle is read-only under a wide allowWrite", "TestTLS_Case4"},
	{"the roots are the host's own", "TestSystemRoots TestHostRoots TestTLS_Case1"},
	{"of NODE_EXTRA_CA_CERTS certificates alone are copied", "TestHostRoots TestWriteFiles"},
	{"extraCaCertPaths hold for the upstream leg", "TestPool TestTLS_36_ExtraAuthorities"}, // 10
	{"four further variables lead to the bundle", "TestEnvironment TestTLS_14_Case35"},
	{"JVMs trust what is minted", "TestJavaTrusts TestTLS_14_Case35"},
	{"HTTP/2 is not offered, and a client that speaks nothing else is told", "TestTLS24_case7_ALPN TestALPN"},
	{"WebSockets go through filter and substitution, then are relayed", "TestTLS35_WebSocket"},
	{"WebSockets are refused under refuseOpaqueTunnels", "TestREQ4_WebSocketsCannotBeRead"},
	{"tunnels go through parentProxy", "TestTLS40_ParentProxies TestTLS40_NoProxy"},
	{"an address is dialled once", "TestTLS37_OneLookupForATunnel"},
	{"a ClientHello split over records is read", "TestSplitHello TestOtherClients"},
	{"no path of another host is answered with a revocation list", "TestTLS28_NoRevocationListIsServed TestPRX22_EveryPathIsTheDecidersToJudge"},
	{"an upstream TLS failure says upstream-tls and a cause", "TestTLS36_case11_UpstreamsThatCannotBeVerified TestTLS36_UpstreamsThatAreNone"}, // 20
	{"bodies of GET, HEAD and OPTIONS are shown to the filter", "TestCase18_REQ14_Bodies TestREQ14_Body"},
	{"what a filter reads is buffered with a bound", "TestREQ14_Limit TestREQ14_BodyKept"},
	{"the filter never sees the proxy's token", "TestREQ13_TLS33_WhatTheFilterSeesInATunnel TestNET35_WhatTheFilterSees"},
	{"a refusal that closes does not promise otherwise", "TestREQ3_Refusal TestTLS30_TLS31_case14_MalformedRequests TestREQ3_RefusalsClose"},
	{"plain requests without a filter go out as spelled", "TestNET36_WithoutAFilter"},
	{"SigV4 refusals are violations", "TestCRED30_case34_ShapesThatCannotBeSigned"},
	{"TRACE is refused where a credential could be put in", "TestREQ11_case21_TRACE TestCase21_REQ11_Echoes TestCRED24_REQ11_PlainPathRefusals"},
	{"Basic credentials are decoded", "TestCRED23_case23_Basic TestCRED23_Basic TestCRED_Case22_Case23"},
	{"a key in a query stays a fake, and that is said", "TestCRED21_case22_Headers TestCRED22_InTarget"},
	{"a token file that ends in a newline can be used", "TestCRED_Case26 TestWholeFileCRED10"}, // 30
	{"a control byte is refused with its reason", "TestCRED24_ControlCharacters TestCRED24_Control TestCRED24_REQ11_PlainPathRefusals"},
	{"bodies with shorter values keep a length", "TestCRED26_case25_Framing TestCase22_CRED20_CRED21_CRED25_CRED26_PlainPath"},
	{"masked binaries and directories are hidden", "TestCRED_9 TestHiddenFilesCRED9 TestMaskMeansDenyWithoutContent_FS59"},
	{"onExtractNoMatch deny holds under filesystem.disabled", "TestCRED_Case28"},
	{"onExtractNoMatch deny holds for decoded variables", "TestNoMatchCRED14 TestVariablesCRED3CRED4 TestCRED_18_DecodedVariables"},
	{"captures that overlap end the launch", "TestExtractErrorsCRED12CRED17 TestCRED_Case29_Case30"},
	{"a search has a time limit", "TestBoundCRED17 TestCRED_Case29_Case30"},
	{"claims keep the digits of large integers", "TestClaimsCRED19 TestCRED_Case31"},
	{"two commands that mask one name have an entry each", "TestLaunchesCRED6 TestCRED21_TwoLaunchesWithOtherHosts TestOverrides_LIB13_CRED1_CRED6"},
	{"a session that began without credentials injects later", "TestUpdates_TLS2_CRED37_LIB21 TestMasksOfAnUpdateAreInjected_CRED37"}, // 40
	// srt proxy.
	{"the decider's link may be two pipes", "TestPRX1_TwoPipes"},
	{"--version and -d are the proxy's own", "TestPRX1_Options TestPRX1_VersionAndDebug"},
	{"stray arguments and 3x are usage errors", "TestPRX1_Options TestPRX3_DescriptorsThatAreNotUsable"},
	{"SIGINT is SIGTERM", "TestPRX4_5_6_AnInheritedSocket"},
	{"/srt.crl of any host is decided as any other path", "TestPRX22_EveryPathIsTheDecidersToJudge"},
	{"headers named constructor and __proto__ are carried", "TestPRX35_NamesAndMethodsOfAnyKind"},
	{"a missing Host is marked", "TestPRX20to26_RefusedBeforeTheDecider"},
	{"any token is a method", "TestPRX35_NamesAndMethodsOfAnyKind"},
	{"repeated headers stay lines of their own", "TestPRX35_36_46_AsSpelled"},
	{"an upstream's X-Deny-Reason is dropped", "TestPRX68_Responses TestPRX68_StrippedResponses"}, // 50
	{"deciders are told that there is no scheme", "TestPRX35_TheGuideTellsOfTheScheme"},
	{"a failed start exits 2", "TestPRX3_StartsThatFail TestPRX3_DescriptorsThatAreNotUsable"},
}
