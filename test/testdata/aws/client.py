"""What the tests ask boto3 to do: client.py <endpoint> <case>... prints a line for each case, "ok" or the error's code."""
import io
import os
import sys

import boto3
import botocore
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.httpsession import URLLib3Session

ENDPOINT = sys.argv[1]
NAMES = [
    "plain", "with space", "plus+and+plus", "tilde~", "sch\u00f6n/\u65e5\u672c", "a//b", "a/./b", "a/../b", "100%25", "%41%2f",
    "q?m&h#=;:@,$!'()*", "[brackets]{}|^`\"<>\\", "trailing/", "tab\there",
]


def client(service, **keys):
    return boto3.client(service, endpoint_url=ENDPOINT, region_name="eu-central-1",
                        config=Config(retries={"max_attempts": 0}, **keys))


def names():
    s3 = client("s3")
    for name in NAMES:
        try:
            s3.put_object(Bucket="b", Key=name, Body=name.encode(), Metadata={"note": "two  blanks "})
            if s3.get_object(Bucket="b", Key=name)["Body"].read() != name.encode():
                print("what came back of %r differs" % name)
        except ClientError as e:
            print("%r: %s" % (name, code(e)))
    found = {o["Key"] for o in s3.list_objects_v2(Bucket="b", Prefix="", StartAfter="", Delimiter="")["Contents"]}
    for name in set(NAMES) - found:
        print("%r is not listed" % name)
    s3.list_objects_v2(Bucket="b", Prefix="plus+and+plus")
    s3.list_objects_v2(Bucket="b", Prefix="sch\u00f6n /&=")
    s3.delete_objects(Bucket="b", Delete={"Objects": [{"Key": n} for n in NAMES[1:]]})
    s3.head_object(Bucket="b", Key="plain")
    s3.delete_object(Bucket="b", Key="plain")


def multipart():
    s3 = client("s3")
    upload = s3.create_multipart_upload(Bucket="b", Key="m")["UploadId"]
    parts = []
    for n in (1, 2):
        part = s3.upload_part(Bucket="b", Key="m", UploadId=upload, PartNumber=n, Body=b"%d" % n * (5 << 20))
        parts.append({"PartNumber": n, "ETag": part["ETag"]})
    s3.complete_multipart_upload(Bucket="b", Key="m", UploadId=upload, MultipartUpload={"Parts": parts})
    assert s3.head_object(Bucket="b", Key="m")["ContentLength"] == 10 << 20


def unsigned():
    s3 = client("s3", s3={"payload_signing_enabled": False})
    s3.put_object(Bucket="b", Key="u", Body=b"u" * 70_000_000)


def checksum():
    """One that the caller asks for goes after the body, whatever the variable says."""
    client("s3").put_object(Bucket="b", Key="c", Body=b"c", ChecksumAlgorithm="CRC32")


def stream():
    client("s3").put_object(Bucket="b", Key="c", Body=io.BytesIO(b"c"))


def skewed():
    client("s3").put_object(Bucket="b", Key="late", Body=b"l")


def presigned():
    url = client("s3").generate_presigned_url("get_object", {"Bucket": "b", "Key": "c"})
    answer = URLLib3Session(verify=os.environ["AWS_CA_BUNDLE"],
                            proxies={"https": os.environ.get("HTTPS_PROXY")}).send(AWSRequest("GET", url).prepare())
    print(answer.status_code, answer.text.strip())


def services():
    assert client("sts").get_caller_identity()["Account"] == "123456789012"
    table = client("dynamodb")
    table.put_item(TableName="table", Item={"id": {"S": "one"}, "text": {"S": "a+b & c=\u00e9"}})
    assert table.get_item(TableName="table", Key={"id": {"S": "one"}})["Item"]["id"]["S"] == "one"
    assert client("iam").list_users(PathPrefix="/a b+c/")["Users"][0]["UserName"] == "me"
    assert client("ec2").describe_regions(RegionNames=["eu-central-1"])["Regions"]


def code(e):
    return "%s %s" % (e.response["Error"]["Code"], e.response["Error"]["Message"])


def version():
    print("trailers" if tuple(map(int, botocore.__version__.split(".")[:2])) >= (1, 36) else "no trailers")


for case in sys.argv[2:]:
    try:
        globals()[case]()
        print(case, "ok")
    except ClientError as e:
        print(case, code(e))
