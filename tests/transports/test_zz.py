from tests.servers import server
def test_x(server):
    with server.client() as c:
        r=c.get("/v1/tools"); print(r.status_code, r.headers, len(r.content))
        print(server.audit_rows)
