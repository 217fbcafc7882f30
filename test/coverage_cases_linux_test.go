package test

// tlsCases are the tests of the cases at the end of the chapter about TLS, requests and credentials, from case 1 on.
var tlsCases = []string{
	"TestTLS_Case1 TestTLS36_case1_TerminatedTunnel",
	"TestTLS_Case2 TestLoadRefuses",
	"TestTLS_Case3 TestHostRoots",
	"TestTLS_Case4 TestNoKeyOnDisk",
	"TestTLS_Case5 TestFailedStartsLeaveNoFiles_LIB3_LIB6_TLS7",
	"TestTLS25_case6_ServerNames TestLeafCache TestHandshakeNames",
	"TestTLS24_case7_ALPN TestALPN",
	"TestTLS42_case8_UnfinishedHandshakes",
	"TestTLS20_case9_WhatIsNotTLSIsOpaque TestREQ4_RefuseOpaqueTunnels",
	"TestTLS41_case10_Slots", // 10
	"TestTLS36_case11_UpstreamsThatCannotBeVerified",
	"TestTLS36_case1_TerminatedTunnel TestTLS32_AbsoluteFormAndFronting",
	"TestCase13_REQ9_REQ10_HostMatch",
	"TestTLS30_TLS31_case14_MalformedRequests",
	"TestCase15_REQ5_REQ6_REQ7_REQ8_InATunnel TestREQ3_VIO13_VIO14_Lines",
	"TestREQ15_REQ16_REQ21_Decisions",
	"TestCase17_REQ17_REQ18_REQ19_EditsInATunnel",
	"TestCase18_REQ14_Bodies TestREQ14_Body",
	"TestREQ15_REQ16_REQ21_Decisions TestNET37_HeaderEdits",
	"TestCase20_REQ20_OnResponse TestREQ20_StripResponse TestREQ20_Response", // 20
	"TestREQ11_case21_TRACE TestCase21_REQ11_Echoes TestREQ12_case21_ClientLeavesDuringTheFilter",
	"TestCRED_Case22_Case23 TestCRED21_case22_Headers TestCase22_CRED20_CRED21_CRED25_CRED26_PlainPath",
	"TestCRED_Case22_Case23 TestCRED23_case23_Basic",
	"TestCRED25_case24_BodiesAtEverySplit TestCRED25_EverySplit",
	"TestCRED26_case25_Framing TestCase25_CRED26_LongBodiesOfThePlainPath",
	"TestCRED_Case26 TestWholeFileCRED10",
	"TestCRED_Case27 TestExtractCRED12",
	"TestCRED_Case28 TestNoMatchCRED14",
	"TestCRED_Case29_Case30 TestExtractCRED12 TestExtractRefused",
	"TestCRED_Case29_Case30 TestBoundCRED17 TestExtractErrorsCRED12CRED17", // 30
	"TestCRED_Case31 TestClaimsCRED19",
	"TestCRED32_Case32",
	"TestCRED33_Path TestCRED33_Query",
	"TestCRED32_case34_AWSRequestsAreSignedAgain TestCRED30_case34_ShapesThatCannotBeSigned TestCRED34_case34_PayloadLimit " +
		"TestCRED29_CRED30_Shapes TestCRED28_OthersAreUntouched",
	"TestCRED_3_4_Case35 TestTLS_14_Case35",
	"TestCRED_35_Case36_NothingIsTold TestCRED_35_NothingInTheSandbox",
}

// proxyCases are those of the chapter about srt proxy.
var proxyCases = []string{
	"TestPRX32_BadHellosEndTheLink TestPRX3_StartsThatFail",
	"TestPRX32_BadHellosEndTheLink TestPRX33_Entries",
	"TestPRX30_OversizedFrame TestPRX3_StartsThatFail",
	"TestPRX32_BadHellosEndTheLink TestPRX3_StartsThatFail",
	"TestPRX35_36_46_AsSpelled TestPRX20to26_RefusedBeforeTheDecider",
	"TestPRX35_36_46_AsSpelled",
	"TestPRX48_49_InCleartext TestPRX46_47_Edits",
	"TestPRX12_14_CredentialInATunnel TestPRX46_47_Edits",
	"TestPRX48_49_InCleartext",
	"TestPRX46_47_Edits", // 10
	"TestPRX41_Denials",
	"TestPRX40to45_Verdicts TestPRX60_LinkEndsWithRequestsPending",
	"TestPRX40to45_Verdicts TestPRX60_LinkEndsWithRequestsPending",
	"TestPRX48_49_InCleartext TestPRX46_47_Edits TestPRX49_AboveLatin1",
	"TestPRX42_50_53_Bodies",
	"TestPRX54_MethodsWithoutBody",
	"TestPRX53_VerdictsWhileTheBodyIsRead TestPRX53_57_Sequences",
	"TestPRX51_57_Timeouts TestPRX53_57_Sequences",
	"TestPRX60_LinkEndsWithRequestsPending TestPRX53_57_Sequences",
	"TestPRX60_LinkEndsWithRequestsPending TestPRX4_5_6_AnInheritedSocket", // 20
	"TestPRX55_BodyBudget",
	"TestPRX20to26_RefusedBeforeTheDecider TestPRX23_24_InsideATunnel",
	"TestPRX20to26_RefusedBeforeTheDecider TestPRX20_21_RequestLines",
	"TestPRX20to26_RefusedBeforeTheDecider TestPRX37_Limits",
	"TestPRX35_36_46_AsSpelled TestPRX20to26_RefusedBeforeTheDecider",
	"TestPRX20to26_RefusedBeforeTheDecider TestPRX12_13_NotTLSAndSilence",
	"TestPRX13_TooManyTunnels TestPRX66_67_Upstream",
	"TestPRX68_Responses TestPRX68_StrippedResponses",
	"TestPRX4_5_6_AnInheritedSocket",
	"TestPRX2_Loopback TestPRX3_DescriptorsThatAreNotUsable", // 30
}
